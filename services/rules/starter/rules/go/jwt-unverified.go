//go:build ignore

package samples

import (
	"errors"

	"github.com/golang-jwt/jwt/v5"
)

func read(parser *jwt.Parser, token string) {
	// ruleid: palisade.go.jwt-unverified
	parser.ParseUnverified(token, jwt.MapClaims{})
	// ruleid: palisade.go.jwt-unverified
	jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{})
	// ok: palisade.go.jwt-unverified
	parser.Parse(token, nil)
}

func keyOf(token *jwt.Token) (any, error) {
	// ok: palisade.go.jwt-unverified
	if token.Method == jwt.SigningMethodNone {
		return nil, errors.New("tokens need a signature")
	}
	// ruleid: palisade.go.jwt-unverified
	return jwt.UnsafeAllowNoneSignatureType, nil
}

func twoSteps(parser *jwt.Parser, token string, keys func(string) jwt.Keyfunc) {
	claims := jwt.RegisteredClaims{}
	// ok: palisade.go.jwt-unverified
	parser.ParseUnverified(token, &claims)
	parser.ParseWithClaims(token, &claims, keys(claims.Issuer))
}
