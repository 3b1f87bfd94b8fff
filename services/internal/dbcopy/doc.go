// Package dbcopy moves a whole Palisade database: from SQLite to PostgreSQL and back, row by row with the ids that the
// rows have, and of SQLite into a backup file and out of it again.
//
// A copy reads a source that nobody can write to meanwhile, writes batches together with a mark of how far it has come
// (table palisade_copy of the target), and at the end reads the target once more: the SHA-256 of all rows of each
// table, in the order of their keys and in one encoding for both databases, must be that of the source. A copy that was
// killed goes on behind its marks, after it has checked that the source still holds what was copied before.
package dbcopy
