package dbcopy

import (
	"context"
	"database/sql"
	"fmt"
)

// highestIDs returns the highest id that was ever assigned in each table with a sequence. Ids of deleted rows must
// not be reused.
func highestIDs(ctx context.Context, source *database) (map[string]int64, error) {
	highest := map[string]int64{}
	for _, t := range allTables() {
		if !t.sequence {
			continue
		}
		query, args := "SELECT MAX(COALESCE((SELECT seq FROM sqlite_sequence WHERE name = $1), 0), COALESCE((SELECT MAX("+quote(t.key)+") FROM "+quote(t.name)+"), 0))", []any{t.name}
		if source.postgres {
			sequence, err := sequenceOf(ctx, source, t)
			if err != nil {
				return nil, err
			}
			query, args = "SELECT GREATEST((SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM "+sequence+"), (SELECT COALESCE(MAX("+quote(t.key)+"), 0) FROM "+quote(t.name)+"))", nil
		}
		var id int64
		if err := source.db.QueryRowContext(ctx, query, args...).Scan(&id); err != nil {
			return nil, fmt.Errorf("read the last id of %s: %w", t.name, err)
		}
		highest[t.name] = id
	}
	return highest, nil
}

func sequenceOf(ctx context.Context, d *database, t *table) (string, error) {
	var name sql.NullString
	if err := d.db.QueryRowContext(ctx, "SELECT pg_get_serial_sequence($1, $2)", quote(t.name), t.key).Scan(&name); err != nil {
		return "", fmt.Errorf("find the sequence of %s: %w", t.name, err)
	}
	if !name.Valid {
		return "", fmt.Errorf("table %s of %s has no sequence for %s", t.name, d.location, t.key)
	}
	return name.String, nil
}

// setHighestIDs makes the target assign ids after the source's.
func setHighestIDs(ctx context.Context, target *database, highest map[string]int64) error {
	for _, t := range allTables() {
		id, numbered := highest[t.name]
		if !numbered || id == 0 {
			continue
		}
		if err := setHighestID(ctx, target, t, id); err != nil {
			return fmt.Errorf("set the next id of %s: %w", t.name, err)
		}
	}
	return nil
}

func setHighestID(ctx context.Context, target *database, t *table, id int64) error {
	if target.postgres {
		sequence, err := sequenceOf(ctx, target, t)
		if err != nil {
			return err
		}
		_, err = target.db.ExecContext(ctx, "SELECT setval($1::regclass, $2)", sequence, id)
		return err
	}
	changed, err := target.db.ExecContext(ctx, "UPDATE sqlite_sequence SET seq = $1 WHERE name = $2", id, t.name)
	if err != nil {
		return err
	}
	n, err := changed.RowsAffected()
	if err != nil || n > 0 {
		return err
	}
	// The row is missing when the table was never written to. For a table without AUTOINCREMENT it has no effect.
	_, err = target.db.ExecContext(ctx, "INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)", t.name, id)
	return err
}
