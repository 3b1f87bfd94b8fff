// Package dbcopy copies a whole Palisade database: from SQLite to PostgreSQL or back, row by row with the same ids,
// and from SQLite to a backup file and back.
//
// A copy blocks all writers of the source. It writes each batch in one transaction with its position (table
// palisade_copy of the target). At the end it reads the target back and compares each table's SHA-256 with the
// source. The checksum covers all rows in key order, in one encoding for both databases. A copy that was killed
// resumes after the last position, once it has checked that the source still has the rows that were copied.
package dbcopy
