//go:build ignore

package samples

import "golang.org/x/crypto/bcrypt"

func hash(password []byte, cost int) {
	// ruleid: palisade.go.bcrypt-low-cost
	bcrypt.GenerateFromPassword(password, bcrypt.MinCost)
	// ruleid: palisade.go.bcrypt-low-cost
	bcrypt.GenerateFromPassword(password, 4)
	// ok: palisade.go.bcrypt-low-cost
	bcrypt.GenerateFromPassword(password, bcrypt.DefaultCost)
	// ok: palisade.go.bcrypt-low-cost
	bcrypt.GenerateFromPassword(password, 12)
	// ok: palisade.go.bcrypt-low-cost
	bcrypt.GenerateFromPassword(password, cost)
}
