//go:build ignore

package samples

import (
	"crypto/rand"
	"crypto/rsa"
)

func keys(bits int) {
	// ruleid: palisade.go.rsa-short-key
	rsa.GenerateKey(rand.Reader, 1024)
	// ok: palisade.go.rsa-short-key
	rsa.GenerateKey(rand.Reader, 2048)
	// ok: palisade.go.rsa-short-key
	rsa.GenerateKey(rand.Reader, bits)
	// ok: palisade.go.rsa-short-key
	rsa.GenerateKey(rand.Reader, 4096)
}
