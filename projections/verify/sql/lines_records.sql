-- A row of the spine in words.
SELECT seq, concatWithSeparator(' ', toString(seq), toString(sign), toString(retracts), toString(kind), toString(event),
  toString(toUInt8(boundary)), toString(toUInt8(quarantined)), toString(toUInt8(passed)),
  toString(block), lower(hex(hash)), toString(ts), lower(hex(vault)), lower(hex(user)), lower(hex(tx)), toString(log_index), lower(hex(payload))) AS line
FROM records
