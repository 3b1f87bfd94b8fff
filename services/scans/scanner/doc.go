// Package scanner reads what a scanner in CI sends (the scan protocol): its results, and what it says at the end.
//
// Both are one JSON document of any size with its keys in any order. It is read as a stream, and written again as
// length-delimited [storev1.ScannerFrame] messages, compressed by zstd, so that whatever works on the results later
// needs neither the document nor memory for all of it. On the way, credentials are left out and secrets are redacted:
// what comes out may be stored.
//
// There is no database and no RPC in this package.
package scanner
