-- The cursor: the newest block, and how many units so far retracted something.
SELECT arrayJoin(['cursor', 'cursor_end']) AS list, block, ts, seq, rewrites FROM newest
