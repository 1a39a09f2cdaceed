-- The highest index of a request that each vault ever had, as of a seq.
SELECT vault, max(request_index) FROM {database}.requests WHERE seq <= {seq:UInt64} AND sign != 0 GROUP BY vault
