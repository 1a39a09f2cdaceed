-- The live rows of lists as text, in the order of the table, each with its number of copies, for a sample of the
-- users, requests and partners. The cursor comes first.
SELECT toString(list), max(seq), concat({line}, ' ', toString(sum(sign)))
FROM lists
WHERE list = 'cursor' OR list NOT IN ('cursor_end', 'touched') AND ({n:UInt64} = 1 OR multiIf(
    list = 'blocks' OR list = 'vault_events' AND kind != 'deposit', true,
    list = 'partner_events', partner % {n:UInt64} = {k:UInt64},
    list IN ('queue', 'requests', 'user_requests'), id % {n:UInt64} = {k:UInt64},
    list IN ('totals', 'user_totals'),
      (list = 'user_totals' OR owner != scope AND owner != toFixedString('', 20))
        AND reinterpretAsUInt64(reverse(substring(owner, 13, 8))) % {n:UInt64} = {k:UInt64},
    reinterpretAsUInt64(reverse(substring(user, 13, 8))) % {n:UInt64} = {k:UInt64}))
GROUP BY {columns}
HAVING sum(sign) != 0
ORDER BY {columns}
SETTINGS optimize_aggregation_in_order = 1
