-- Everything that records says, as a fingerprint of each thousand: what a row says
-- in words, hashed, and added up (the sum wraps).
SELECT intDiv(seq - 1, 1000) * 1000 + 1 AS first, count(), sum(reinterpretAsUInt64(SHA256(concatWithSeparator(' ',
    toString(seq), toString(sign), toString(retracts), toString(kind), toString(event), toString(toUInt8(boundary)), toString(toUInt8(quarantined)),
    toString(block), lower(hex(hash)), toString(ts), toString(log_index), payload))))
FROM {database}.records
WHERE seq <= {seq:UInt64}
GROUP BY first
ORDER BY first
