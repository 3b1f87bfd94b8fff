package migrate

import "embed"

// Files are the versioned migrations of both databases, written by main.go and run by goose.
//
//go:embed sqlite/*.sql postgres/*.sql
var Files embed.FS
