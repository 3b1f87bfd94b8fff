package gitref

import (
	"crypto/sha256"
	"encoding/binary"
)

// ID is the id of a ref of a project: a hash, because refs have no table. 53 bits make a collision within a project
// less likely than one in a million even with 100,000 refs, and JavaScript reads them exactly.
func ID(projectID int64, full string) int64 {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(projectID)), full...))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 11)
}
