// Package store opens the database, keeps its schema up to date and runs transactions.
//
// There are two databases: SQLite (one file, no set-up; one writer and a pool of readers on the same file) and
// PostgreSQL (one pool). Everything above sees ent clients. Times are microseconds since 1970 UTC in both.
package store
