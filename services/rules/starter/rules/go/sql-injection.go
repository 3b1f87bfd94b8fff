//go:build ignore

package samples

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

func find(ctx context.Context, db *sql.DB, id, kind string) {
	// ruleid: palisade.go.sql-injection
	db.Query("SELECT name FROM users WHERE id = " + id)
	// ruleid: palisade.go.sql-injection
	db.Query("SELECT name FROM users WHERE id = '" + id + "' AND kind = '" + kind + "'")
	// ruleid: palisade.go.sql-injection
	db.QueryRowContext(ctx, fmt.Sprintf("SELECT name FROM users WHERE id = %s", id))
	// ruleid: palisade.go.sql-injection
	db.Exec(fmt.Sprintf("DELETE FROM users WHERE id = %s", id))
	// ok: palisade.go.sql-injection
	db.QueryRowContext(ctx, "SELECT name FROM users WHERE id = $1", id)
	// ok: palisade.go.sql-injection
	db.Query("SELECT name FROM users"+" WHERE id = $1", id)
}

type search struct{}

func (search) Query(text string) {}

func ask(index search, word string) {
	// ok: palisade.go.sql-injection
	index.Query("title:" + word)
	// ok: palisade.go.sql-injection
	index.Query(fmt.Sprintf("title:%s", word))
}

func findSeveral(ctx context.Context, db *sql.DB, ids []any, names []string) {
	// ok: palisade.go.sql-injection
	db.Query("SELECT name FROM users WHERE id IN ("+strings.Repeat("?,", len(ids)-1)+"?)", ids...)
	// ok: palisade.go.sql-injection
	db.QueryContext(ctx, "SELECT a FROM b WHERE c IN ("+strings.TrimSuffix(strings.Repeat("?,", len(ids)), ",")+")", ids...)
	// ok: palisade.go.sql-injection
	db.QueryContext(ctx, fmt.Sprintf("SELECT name FROM users WHERE id IN (?%s)", strings.Repeat(",?", len(ids)-1)), ids...)
	// ruleid: palisade.go.sql-injection
	db.Query("SELECT name FROM users WHERE name IN (" + strings.Join(names, ",") + ")")
}
