-- What logs did to the queue, to the users of vaults and to the lists of users, by
-- records and by the tables of these: fingerprints of all of it. They wrap.
SELECT found, wanted
FROM (SELECT
  (SELECT (
      sumIf(cityHash64(seq, vault, request_index, open, waiting, if(waiting = 0, 0, estimate), if(waiting = 0, 0, expires_ts)), open != 0 OR waiting != 0),
      sumIf(cityHash64(seq, vault, vault_user), vault_user != 0),
      arraySum(sumForEach(arrayMap((list, left, joined) ->
        if(joined = 0, 0, reinterpretAsInt64(cityHash64(seq, list, toUInt32(joined - 1)))) - if(left = 0, 0, reinterpretAsInt64(cityHash64(seq, list, toUInt32(left - 1)))),
        [toUInt8(1), toUInt8(2), toUInt8(3)], [first_left, deposited_left, withdrawn_left], [first_joined, deposited_joined, withdrawn_joined]))))
    FROM {database}.records WHERE kind = 'log' AND seq <= {seq:UInt64}) AS says,
  (SELECT sumIf(cityHash64(seq, vault, request_index, open, waiting, if(waiting = 0, 0, estimate), if(waiting = 0, 0, expires_ts)), open != 0 OR waiting != 0)
    FROM {database}.requests WHERE seq <= {seq:UInt64}) AS queued,
  (SELECT sumIf(cityHash64(seq, vault, vault_user), vault_user != 0) FROM {database}.flows WHERE seq <= {seq:UInt64}) AS users,
  (SELECT sum(users * reinterpretAsInt64(cityHash64(seq, toUInt8(list), bucket))) FROM {database}.rankings WHERE seq <= {seq:UInt64} AND users != 0) AS moves,
  toString(says) AS found, toString((queued, users, moves)) AS wanted)
