//go:build ignore

package samples

import (
	cryptorand "crypto/rand"
	"fmt"
	"math/rand"
)

func values() {
	// ruleid: palisade.go.insecure-random
	resetToken := fmt.Sprint(rand.Int63())
	// ruleid: palisade.go.insecure-random
	otp := rand.Intn(1000000)
	// ok: palisade.go.insecure-random
	sessionToken := cryptorand.Text()
	// ok: palisade.go.insecure-random
	footprint := rand.Intn(100)
	// ok: palisade.go.insecure-random
	tokenCount := rand.Intn(100)
	// ok: palisade.go.insecure-random
	jitter := rand.Intn(100)
	_, _, _, _, _, _ = resetToken, otp, sessionToken, footprint, tokenCount, jitter
}
