//go:build ignore

// Command main writes a versioned migration for both databases: the difference between the existing files and
// ent/schema. Run it with `make migration NAME=what_changes`, which starts a temporary PostgreSQL. Without a name it
// only rewrites the checksums, after a new file was edited manually: `make migration-sums`.
package main

import (
	"context"
	"database/sql"
	"log"
	"os"

	atlas "ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3"

	tables "github.com/palisade/palisade/ent/migrate/atlas"
)

const (
	sqliteDir   = "ent/migrate/sqlite"
	postgresDir = "ent/migrate/postgres"
)

func main() {
	if len(os.Args) == 1 {
		for _, dir := range []string{sqliteDir, postgresDir} {
			sum(dir)
		}
		return
	}
	if len(os.Args) != 2 {
		log.Fatal("usage: make migration NAME=what_changes")
	}
	postgres := os.Getenv("PALISADE_TEST_POSTGRES")
	if postgres == "" {
		log.Fatal("PALISADE_TEST_POSTGRES is not set: run `make migration NAME=…`")
	}
	write(os.Args[1], "sqlite3", dialect.SQLite, "file:dev?mode=memory&_fk=1", sqliteDir)
	write(os.Args[1], "pgx", dialect.Postgres, postgres, postgresDir)
}

func sum(dir string) {
	files, err := sqltool.NewGooseDir(dir)
	if err != nil {
		log.Fatal(err)
	}
	sum, err := files.Checksum()
	if err != nil {
		log.Fatal(err)
	}
	if err := atlas.WriteSumFile(files, sum); err != nil {
		log.Fatal(err)
	}
}

func write(name, driver, dialectName, dsn, dir string) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		log.Fatal(err)
	}
	files, err := sqltool.NewGooseDir(dir)
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	defer db.Close()
	m, err := schema.NewMigrate(entsql.OpenDB(dialectName, db), schema.WithDir(files),
		schema.WithMigrationMode(schema.ModeReplay), schema.WithDialect(dialectName),
		schema.WithFormatter(sqltool.GooseFormatter), schema.WithErrNoPlan(true), schema.WithDropColumn(true), schema.WithDropIndex(true))
	if err != nil {
		log.Fatal(err)
	}
	if err := m.NamedDiff(context.Background(), name, tables.Tables...); err != nil {
		log.Fatalf("%s: %v", dialectName, err)
	}
}
