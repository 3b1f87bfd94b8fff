// Package store opens the database, migrates its schema and runs transactions.
//
// It supports SQLite (one file, no setup; one writer and a pool of readers) and PostgreSQL (one pool). The packages
// above use ent clients. Both databases store times as microseconds since 1970 UTC.
package store
