package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBackupRefusesDamage: a backup that a restore would refuse is an error about the database, and leaves nothing.
func TestBackupRefusesDamage(t *testing.T) {
	whole := t.TempDir()
	if got := palisade(t, "", []string{"PALISADE_DATA=" + whole}, "migrate", "up"); got.status != exitOK {
		t.Fatal(got.err)
	}
	path := filepath.Join(whole, "palisade.db")
	findings, index := rootsOf(t, path)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := int(content[16])<<8 | int(content[17])
	change := func(page, from int, to ...byte) []byte {
		changed := slices.Clone(content)
		copy(changed[(page-1)*size+from:], to)
		return changed
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"a page of findings":  {change(findings, 0, 99), "is damaged"},
		"entries of an index": {change(index, 3, 0, 0), "is damaged"},
		"cut off":             {content[:len(content)/2], "malformed"},
		"empty":               {nil, "is not a Palisade database"},
		"no database":         {[]byte("hello"), "not a database"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, target := t.TempDir(), t.TempDir()
			source, file := filepath.Join(dir, "palisade.db"), filepath.Join(target, "backup.db")
			if err := os.WriteFile(source, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			got := palisade(t, "", []string{"PALISADE_DATA=" + dir}, "backup", "--to", file)
			if got.status != exitError || strings.Contains(got.err, target) {
				t.Errorf("status %d: %s", got.status, got.err)
			}
			wantParts(t, got.err, source, c.want)
			if entries, err := os.ReadDir(target); err != nil || len(entries) > 0 {
				t.Errorf("left behind: %v %v", entries, err)
			}
		})
	}
}

// rootsOf adds a table with an index to a database, and returns the first pages of the findings and of the index.
func rootsOf(t *testing.T, path string) (findings, index int) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec("CREATE TABLE extra (x TEXT); CREATE INDEX extra_x ON extra (x); INSERT INTO extra VALUES ('a'), ('b'); PRAGMA journal_mode = DELETE")
	if err == nil {
		err = db.QueryRow("SELECT rootpage, (SELECT rootpage FROM sqlite_master WHERE name = 'extra_x') FROM sqlite_master WHERE name = 'findings'").
			Scan(&findings, &index)
	}
	if err != nil {
		t.Fatal(err)
	}
	return findings, index
}
