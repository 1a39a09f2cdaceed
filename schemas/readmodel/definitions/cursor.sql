-- The cursor: the newest block, and the number of units up to the seq that retracted something.
SELECT arrayJoin(['cursor', 'cursor_end']) AS list, block, ts, seq, rewrites FROM newest
