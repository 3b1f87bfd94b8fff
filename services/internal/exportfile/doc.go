// Package exportfile keeps the files of exports. A job writes a file once, and its caller downloads it for a while. The
// nodes of an installation share no disk, so files are in the database, in compressed chunks. Neither side holds more
// than a chunk in memory.
package exportfile

import (
	"fmt"
	"time"
)

const (
	// ChunkSize is the number of bytes of a file in one chunk.
	ChunkSize = 1 << 20
	// MaxBytes is the maximum size of a file: about 15 million findings as CSV.
	MaxBytes = 8 << 30
	// Life is how long a file can be downloaded, and how long a job may take to write it.
	Life = 24 * time.Hour
)

// URL is the address of a file. baseURL is the public URL of the server.
func URL(baseURL string, deploymentID, exportID int64) string {
	return fmt.Sprintf("%s/api/agent/deployments/%d/exports/%d/file", baseURL, deploymentID, exportID)
}
