//go:build ignore

package samples

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"hash/fnv"
)

func digests(data []byte) {
	// ruleid: palisade.go.weak-hash
	md5.Sum(data)
	// ruleid: palisade.go.weak-hash
	sha1.New()
	// ok: palisade.go.weak-hash
	sha256.Sum256(data)
	// ok: palisade.go.weak-hash
	fnv.New64a()
}
