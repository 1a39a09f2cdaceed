-- A page of the users as of a block: the places in rankings are those of the
-- log's order, which is not the chain's across vaults, so they are summed anew.
{{template "users" "AND block <= {block:UInt64}"}}
ORDER BY {{template "user_order" .}} LIMIT {limit:UInt64} OFFSET {offset:UInt64}
