package hosttest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"testing"

	"golang.org/x/crypto/nacl/box"
)

// boxKeys is the pair of keys of the sealed boxes of all repositories.
type boxKeys struct{ public, private *[32]byte }

func newBoxKeys(t testing.TB) boxKeys {
	public, private, err := box.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return boxKeys{public, private}
}

const boxKeyID = "568250167242549743"

// Secrets are the opened secrets of all repositories for GitHub Actions, by repository and name
// ("acme/web:TOKEN").
func (h *GitHub) Secrets() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.secrets)
}

func (h *GitHub) publicKey(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, object{"key_id": boxKeyID, "key": base64.StdEncoding.EncodeToString(h.boxes.public[:])})
}

// putSecret opens the box, as GitHub does before a workflow runs.
func (h *GitHub) putSecret(w http.ResponseWriter, r *http.Request) {
	var request struct {
		KeyID          string `json:"key_id"`
		EncryptedValue string `json:"encrypted_value"`
	}
	_ = json.NewDecoder(r.Body).Decode(&request)
	sealed, _ := base64.StdEncoding.DecodeString(request.EncryptedValue)
	value, ok := box.OpenAnonymous(nil, sealed, h.boxes.public, h.boxes.private)
	if !ok || request.KeyID != boxKeyID {
		write(w, http.StatusUnprocessableEntity, object{"message": "Bad request - key_id or encrypted_value is invalid", "status": "422"})
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key, status := r.PathValue("owner")+"/"+r.PathValue("repo")+":"+r.PathValue("name"), http.StatusCreated
	if _, known := h.secrets[key]; known {
		status = http.StatusNoContent
	}
	h.secrets[key] = string(value)
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	write(w, status, object{})
}
