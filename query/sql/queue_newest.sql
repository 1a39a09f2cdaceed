-- The buckets of the queue (256 requests of a vault each) in which anything is,
-- from the projection of that name, and those with rows later than the pin.
{{template "queue" ""}}
HAVING queued != 0 OR last > {seq:UInt64}
