-- The records after a seq: blocks, vaults and what logs did, and what took some back.
SELECT seq, sign, retracts, if(kind = 'vault', r.payload, '') AS payload, kind, event, block, ts,
  vault, request_index, open, waiting, estimate, expires_ts, vault_user,
  first_left, first_joined, deposited_left, deposited_joined, withdrawn_left, withdrawn_joined
FROM {db:Identifier}.records AS r
WHERE seq > {since:UInt64} AND seq <= {seq:UInt64}
ORDER BY seq
{{template "by_row"}}
