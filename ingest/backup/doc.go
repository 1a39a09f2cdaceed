// Package backup copies the log of a chain into files and back: the topics of the log, the cursor and the referrals.
//
// A backup is a folder:
//
//	manifest.json   the contents, in JSON: the id of the log, its segments, and the newest snapshot
//	000001.zst ...  the segments: records, compressed by zstd
//	lock            held while a command works on the folder
//
// A segment is the binary magic "navlog segment 1\n" and records, one after the other. Numbers are varints as in
// encoding/binary; bytes are preceded by their length plus one, where 0 stands for null:
//
//	record    topic (1 log, 2 referral deposits, 3 referral withdrawals), partition, offset, timestamp, key, value,
//	          headers
//	timestamp signed, Unix milliseconds
//	headers   their number, then for each its key and its value, both as bytes
//
// Segments hold whole units: the log of a segment ends at a boundary. Their hashes are chained: the chain value of a
// segment is SHA-256 of the chain value before it, the SHA-256 of the file, and its name. The first chain value is
// SHA-256 of the format, the chain id, the log id and the number of referral partitions. A snapshot names how many
// segments it includes and holds the cursor that was committed with the last of their records. Its seal is SHA-256 of
// the chain value of its last segment and the cursor. So a file that is missing, changed or swapped is detected, and an
// operator who keeps the seal elsewhere can detect that a whole backup was replaced. The manifest also holds its own
// SHA-256, because the positions from which the next backup continues are in nothing else.
//
// The offsets in a backup are those that the records had. A restored record has another offset, because the markers of
// transactions have offsets too. Nothing depends on them: records are found by seq (invariant 2 of
// docs/architecture.md).
package backup
