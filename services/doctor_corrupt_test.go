package services

import (
	"os"
	"testing"

	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// TestDoctorFindsCorruptPages overwrites pages of an open database.
func TestDoctorFindsCorruptPages(t *testing.T) {
	t.Parallel()
	dir := storetest.SQLite(t)
	st := storetest.Open(t, store.Options{DataDir: dir})
	if got := checkIntegrity(t.Context(), st); !got.OK {
		t.Fatalf("a good database: %+v", got)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = storetest.Open(t, store.Options{DataDir: dir})
	path := dir + "/" + store.SQLiteFile
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := len(raw) / 2; at < len(raw); at++ {
		raw[at] = 0xa5
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil { // in place, under the open database
		t.Fatal(err)
	}
	if got := checkIntegrity(t.Context(), st); got.OK {
		t.Error("doctor did not find it")
	}
}
