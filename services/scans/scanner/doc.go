// Package scanner reads what a scanner in CI sends (the scan protocol): its results, and its completion.
//
// Both are one JSON document of any size with its keys in any order. It is read as a stream, and written as
// length-delimited [storev1.ScannerFrame] messages, compressed by zstd. So later steps need neither the document nor
// memory for all of it. Credentials are removed and secrets redacted on the way, so the output may be stored.
//
// This package uses no database and no RPC.
package scanner
