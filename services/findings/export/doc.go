// Package export writes findings to files, and reads such files again.
//
// A job writes a file for a caller, with what the caller sees at that time, in one of five formats: CSV for
// spreadsheets, NDJSON without loss for another installation, SARIF for tools that read results, and OpenVEX and
// CycloneDX for those who use the software. Ids of the database appear in CSV alone.
package export
