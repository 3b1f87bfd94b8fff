package tasktoken

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

func newTokens(t *testing.T) *Tokens {
	t.Helper()
	keyring, err := secret.Open(filepath.Join(t.TempDir(), "palisade.key"), true)
	if err != nil {
		t.Fatal(err)
	}
	return New(storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)}), keyring, "https://palisade.test")
}

func TestTokensNameTheirTask(t *testing.T) {
	t.Parallel()
	tokens := newTokens(t)
	rapid.Check(t, func(rt *rapid.T) {
		task := Task{
			DeploymentID: rapid.Int64Min(1).Draw(rt, "deployment"), Kind: rapid.StringMatching("[a-z_]{1,20}").Draw(rt, "kind"),
			ObjectID: rapid.Int64().Draw(rt, "object"), JobIDs: rapid.SliceOfN(rapid.Int64Min(1), 1, MaxJobs).Draw(rt, "jobs"),
		}
		token, err := tokens.Mint(t.Context(), task)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := tokens.Read(t.Context(), token)
		if err != nil || !reflect.DeepEqual(*got, task) {
			rt.Fatalf("read %+v, %v; want %+v", got, err, task)
		}
		if len(token) > 4096 {
			rt.Fatalf("the token has %d bytes", len(token))
		}
	})
}

// TestInvalidTokens: forged, foreign, damaged and expired tokens give one error.
func TestInvalidTokens(t *testing.T) {
	t.Parallel()
	tokens, other := newTokens(t), newTokens(t)
	task := Task{DeploymentID: 7, Kind: "export", ObjectID: 3, JobIDs: []int64{5}}
	mint := func(by *Tokens) string {
		token, err := by.Mint(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	good := mint(tokens)
	unsigned, err := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"aud": audience, "exp": time.Now().Add(time.Hour).Unix(), "deploymentId": "7", "objectId": "3", "jobIds": []int64{5}}).
		SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(c jwt.MapClaims) string {
		key, err := tokens.signingKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	for name, token := range map[string]string{
		"empty": "", "text": "x.y.z", "damaged": good[:len(good)-2], "of another server": mint(other), "unsigned": unsigned,
		"other claims":     good[:strings.Index(good, ".")+1] + strings.Split(unsigned, ".")[1] + good[strings.LastIndex(good, "."):],
		"without jobs":     sign(jwt.MapClaims{"aud": audience, "exp": time.Now().Add(time.Hour).Unix(), "deploymentId": "7", "objectId": "3"}),
		"without end":      sign(jwt.MapClaims{"aud": audience, "deploymentId": "7", "objectId": "3", "jobIds": []int64{5}}),
		"another audience": sign(jwt.MapClaims{"aud": "x", "exp": time.Now().Add(time.Hour).Unix(), "deploymentId": "7", "objectId": "3", "jobIds": []int64{5}}),
	} {
		if task, err := tokens.Read(t.Context(), token); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, task, err)
		}
	}
	tokens.now = func() time.Time { return time.Now().Add(Life + time.Second) }
	if task, err := tokens.Read(t.Context(), good); !errors.Is(err, ErrInvalid) {
		t.Errorf("expired: %+v, %v", task, err)
	}
	for _, n := range []int{0, MaxJobs + 1} {
		if _, err := tokens.Mint(t.Context(), Task{JobIDs: make([]int64, n)}); err == nil {
			t.Errorf("a token for %d jobs", n)
		}
	}
}
