//go:build ignore

package samples

import (
	"crypto/aes"
	"crypto/des"
	"crypto/rc4"
)

func ciphers(key []byte) {
	// ruleid: palisade.go.weak-cipher
	des.NewCipher(key)
	// ruleid: palisade.go.weak-cipher
	rc4.NewCipher(key)
	// ok: palisade.go.weak-cipher
	aes.NewCipher(key)
	// ok: palisade.go.weak-cipher
	_ = des.BlockSize
	// ok: palisade.go.weak-cipher
	cipher.NewGCM(nil)
}
