-- How many requests of each vault are in the queue, how many of them wait for
-- their money, and how much that is. A request whose time is over is no longer
-- in it, unless it was funded.
SELECT vault, sum(open) - sumIf(waiting, {{template "due"}}) AS pending,
  sumIf(waiting, NOT ({{template "due"}})) AS total, sumIf(waiting * estimate, NOT ({{template "due"}})) AS amount
FROM {db:Identifier}.requests
WHERE ({vault:String} = '' OR vault = toFixedString(unhex({vault:String}), 20)) AND seq <= {seq:UInt64} AND block <= {block:UInt64}
GROUP BY vault
