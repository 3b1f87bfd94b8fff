package store

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/migrate"
)

// lastReleased is the version of the newest migration in the last release; raise it with each release tag. Before
// the first release it is the newest migration that is older than this rule. Later migrations run while nodes of
// the previous release serve, so they may only add (see CONTRIBUTING.md, Migrations).
const lastReleased = 20261121111757

// blocking lists old PostgreSQL migrations that create or drop an index of a table in use without CONCURRENTLY,
// which blocks the table. They have been applied and cannot change. Do not add to the list.
var blocking = map[string]string{
	"20261121051319_organization.sql": "older than the rule that migrations run while nodes serve",
	"20261121083822_workflows.sql":    "older than that rule",
	"20261121111757_identity.sql":     "older than that rule",
	"20261121153251_catalog.sql":      "rebuilt every index of finding lists before this test existed: docs/scale.md says to stop all nodes",
}

// TestMigrationsDoNotBlock: nodes keep serving while a migration runs.
func TestMigrationsDoNotBlock(t *testing.T) {
	seen := map[string]bool{}
	eachMigration(t, func(name string, _ int64, text string) {
		for _, problem := range blocks(text) {
			seen[name] = true
			if blocking[name] == "" {
				t.Errorf("ent/migrate/postgres/%s: %s", name, problem)
			}
		}
	})
	for name := range blocking {
		if !seen[name] {
			t.Errorf("blocking names %s, which does not block", name)
		}
	}
}

func TestBlocksFinds(t *testing.T) {
	for statement, want := range map[string]string{
		`CREATE INDEX CONCURRENTLY "a_list" ON "a" ("x");`:                                   "",
		`CREATE UNIQUE INDEX CONCURRENTLY "a_list" ON "a" ("x");`:                            "",
		`DROP INDEX CONCURRENTLY "a_x";`:                                                     "",
		`DROP INDEX CONCURRENTLY IF EXISTS "a_x";`:                                           "",
		`CREATE TABLE "b" ("id" bigint); CREATE INDEX "b_x" ON "b" ("x");`:                   "",
		`CREATE TABLE "b" ("id" bigint); CREATE INDEX "b_x" ON "b" ("x"); DROP INDEX "b_x";`: "",
		`UPDATE "a" SET "x" = 1;`:                                                            "",
		`CREATE INDEX "a_list" ON "a" ("x");`:                                                `CREATE INDEX "a_list"`,
		`CREATE UNIQUE INDEX "a_list" ON "a" ("x");`:                                         `CREATE UNIQUE INDEX "a_list"`,
		`CREATE INDEX IF NOT EXISTS "a_list" ON "a" ("x");`:                                  `CREATE INDEX IF NOT EXISTS "a_list"`,
		`CREATE INDEX "a_list" ON ONLY "a" USING btree ("x");`:                               `CREATE INDEX "a_list"`,
		`DROP INDEX "a_x";`:                                                                  `DROP INDEX "a_x"`,
		`DROP INDEX IF EXISTS "a_x";`:                                                        `DROP INDEX IF EXISTS "a_x"`,
		`DROP INDEX "of_no_table_that_we_know";`:                                             `DROP INDEX "of_no_table_that_we_know"`,
		`REINDEX INDEX "a_x";`:                                                               `REINDEX INDEX "a_x"`,
		"create index a_list on a (x);":                                                      "create index a_list",
	} {
		got := strings.Join(blocks("-- +goose Up\n"+statement+"\n-- +goose Down\nDROP INDEX \"a_x\";\n"), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s\n got %q\nwant %q", statement, got, want)
		}
	}
}

// harmless lists migrations that change stored values which the previous version reads as well.
var harmless = map[string]string{
	"20261126131511_dependency_query.sql": "turns a setting on; both versions read and write both values",
}

// TestMigrationsOnlyExpand: migrations after the last release keep that release working.
func TestMigrationsOnlyExpand(t *testing.T) {
	known := schemaSoFar{unique: map[string]bool{}}
	eachMigration(t, func(name string, version int64, text string) {
		for _, problem := range known.check(text) {
			if version > lastReleased && harmless[name] == "" {
				t.Errorf("ent/migrate/postgres/%s: %s", name, problem)
			}
		}
	})
}

// eachMigration reads the PostgreSQL migrations in order of version.
func eachMigration(t *testing.T, read func(name string, version int64, text string)) {
	t.Helper()
	names, err := fs.Glob(migrate.Files, "postgres/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("migrations: %v, %v", names, err)
	}
	for _, path := range names {
		text, err := fs.ReadFile(migrate.Files, path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(path, "postgres/")
		prefix, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(prefix, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		read(name, version, string(text))
	}
}

// TestNewerSchemaIsAccepted: a program that is older than the schema starts and serves. During an upgrade, nodes of
// two versions share the schema.
func TestNewerSchemaIsAccepted(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st := open(t, o)
		if _, err := st.MigrateOnStart(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			"ALTER TABLE findings ADD COLUMN of_the_next_release TEXT NULL",
			"INSERT INTO goose_db_version (version_id, is_applied) VALUES (29991231235959, TRUE)",
		} {
			if _, err := st.writerDB.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		older := open(t, o)
		if backup, err := older.MigrateOnStart(t.Context()); err != nil || backup != "" {
			t.Errorf("start on a newer schema: %q, %v", backup, err)
		}
		if applied, err := older.Migrate(t.Context()); err != nil || len(applied) != 0 {
			t.Errorf("migrate a newer schema: %v, %v", applied, err)
		}
		if _, pending := migrations(t, older); pending != 0 {
			t.Errorf("%d migrations are pending", pending)
		}
	})
}

func TestExpandRefuses(t *testing.T) {
	for statement, want := range map[string]string{
		`CREATE TABLE "b" ("id" bigint NOT NULL);`:                                                  "",
		`CREATE INDEX "b_list" ON "a" ("x");`:                                                       "",
		`ALTER TABLE "a" ADD COLUMN "y" text NULL, ADD COLUMN "z" bigint NOT NULL DEFAULT 0;`:       "",
		`ALTER TABLE "a" ADD COLUMN "y" numeric(10, 2) NOT NULL DEFAULT 0;`:                         "",
		`ALTER TABLE "a" ALTER COLUMN "x" DROP NOT NULL;`:                                           "",
		`ALTER TABLE "a" ALTER COLUMN "x" SET DEFAULT 1;`:                                           "",
		`UPDATE "a" SET "x" = 1 WHERE "x" IS NULL;`:                                                 "",
		`DROP INDEX "a_list";`:                                                                      "",
		`DROP INDEX CONCURRENTLY IF EXISTS "a_list";`:                                               "",
		"-- unused since v1.2.0: nobody reads it\nALTER TABLE \"a\" DROP COLUMN \"x\";":             "",
		`CREATE TABLE "b" ("id" bigint); CREATE UNIQUE INDEX "b_by_id" ON "b" ("id");`:              "",
		`ALTER TABLE "a" ADD COLUMN "y" text NULL; CREATE UNIQUE INDEX "a_by_y" ON "a" ("x", "y");`: "",
		`ALTER TABLE "a" ADD COLUMN "y" text NULL; UPDATE "a" SET "y" = 'new';`:                     "",
		`ALTER TABLE "a" ADD COLUMN "y" text NULL; UPDATE "a" SET "y" = 'new', "x" = 'other';`:      `UPDATE "a" SET "y"`,
		`UPDATE "a" SET "x" = 'another encoding';`:                                                  `UPDATE "a" SET "x"`,
		`UPDATE "a" SET "x" = 1 WHERE "y" IS NULL;`:                                                 `UPDATE "a" SET "x"`,
		`UPDATE "a" SET "x" = 1, "z" = 2 WHERE "x" IS NULL;`:                                        `UPDATE "a" SET "x"`,
		`ALTER TABLE "a" ADD COLUMN "y" text NOT NULL DEFAULT '' UNIQUE;`:                           `ADD COLUMN "y"`,
		`ALTER TABLE "a" ADD COLUMN "y" bigint NOT NULL DEFAULT 0 CHECK ("x" > 0);`:                 `ADD COLUMN "y"`,
		`ALTER TABLE "a" ADD COLUMN "y" text NULL CHECK ("x" > 0);`:                                 `ADD COLUMN "y"`,
		`ALTER TABLE "a" ADD COLUMN "y" bigint NULL REFERENCES "b" ("id");`:                         `ADD COLUMN "y"`,
		`DROP TABLE "a";`:                                                                                `DROP TABLE "a"`,
		`ALTER TABLE "a" DROP COLUMN "x";`:                                                               `DROP COLUMN "x" of "a"`,
		`ALTER TABLE "a" ADD COLUMN "y" text NOT NULL;`:                                                  `ADD COLUMN "y" text NOT NULL of "a"`,
		`ALTER TABLE "a" ADD COLUMN "y" text NULL, ALTER COLUMN "x" SET NOT NULL;`:                       `ALTER COLUMN "x" SET NOT NULL of "a"`,
		`ALTER TABLE "a" ALTER COLUMN "x" TYPE integer;`:                                                 `ALTER COLUMN "x" TYPE integer of "a"`,
		`ALTER TABLE "a" ALTER COLUMN "x" DROP DEFAULT;`:                                                 `DROP DEFAULT of "a"`,
		`ALTER TABLE "a" RENAME COLUMN "x" TO "y";`:                                                      `RENAME COLUMN "x" TO "y" of "a"`,
		`ALTER TABLE "a" RENAME TO "b";`:                                                                 `RENAME TO "b" of "a"`,
		`ALTER TABLE "a" ADD CONSTRAINT "c" CHECK ("x" > 0);`:                                            `ADD CONSTRAINT "c"`,
		`CREATE UNIQUE INDEX "a_by_x" ON "a" ("x");`:                                                     `CREATE UNIQUE INDEX "a_by_x" ON "a"`,
		`ALTER TABLE "a" ADD COLUMN "y" text NOT NULL DEFAULT ''; CREATE UNIQUE INDEX "i" ON "a" ("y");`: `CREATE UNIQUE INDEX "i" ON "a"`,
		`DROP INDEX "a_unique";`:                                                                         `DROP INDEX "a_unique"`,
		`DELETE FROM "a";`:                                                                               `DELETE FROM "a"`,
		`TRUNCATE "a";`:                                                                                  `TRUNCATE "a"`,
	} {
		known := schemaSoFar{unique: map[string]bool{"a_unique": true}}
		got := strings.Join(known.check("-- +goose Up\n"+statement+"\n-- +goose Down\nDROP TABLE \"b\";\n"), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s\n got %q\nwant %q", statement, got, want)
		}
	}
}

// schemaSoFar is what the migrations up to a version have created.
type schemaSoFar struct {
	unique map[string]bool // names of unique indexes
}

var (
	unusedSince  = regexp.MustCompile(`(?m)^-- unused since v\d+\.\d+\.\d+: \S`)
	createTable  = regexp.MustCompile(`^CREATE (?:UNLOGGED )?TABLE "(\w+)"`)
	anyIndex     = regexp.MustCompile(`(?is)^(CREATE (?:UNIQUE )?INDEX|DROP INDEX|REINDEX)\b`)
	concurrently = regexp.MustCompile(`(?i)^\S+ (?:UNIQUE )?(?:INDEX |TABLE )CONCURRENTLY `)
	indexOn      = regexp.MustCompile(`(?is)^CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?"(\w+)" ON (?:ONLY )?"(\w+)"`)
	createUnique = regexp.MustCompile(`^CREATE UNIQUE INDEX (?:CONCURRENTLY )?"(\w+)" ON "(\w+)" \(([^)]*)\)`)
	dropIndex    = regexp.MustCompile(`^DROP INDEX (?:CONCURRENTLY )?(?:IF EXISTS )?"(\w+)"`)
	alterTable   = regexp.MustCompile(`(?s)^ALTER TABLE "(\w+)" (.*)$`)
	addColumn    = regexp.MustCompile(`^ADD COLUMN "(\w+)" `)
	nonBlocking  = regexp.MustCompile(`^(CREATE INDEX |INSERT INTO )`)
	fill         = regexp.MustCompile(`(?s)^UPDATE "?(\w+)"? SET "?(\w+)"? = [^,]*? WHERE "?(\w+)"? IS NULL$`)
	update       = regexp.MustCompile(`(?s)^UPDATE "?(\w+)"? SET "?(\w+)"? = `)
	constraint   = regexp.MustCompile(`(?i) (UNIQUE|CHECK|REFERENCES|PRIMARY KEY|CONSTRAINT|GENERATED)\b`)
	relaxing     = regexp.MustCompile(`^ALTER COLUMN "\w+" (DROP NOT NULL|SET DEFAULT .*)$`)
)

// check returns what a migration does that breaks nodes of the previous version.
func (k schemaSoFar) check(text string) (problems []string) {
	var made []string          // tables
	added := map[string]bool{} // by "table.column": whether the column is nullable and has no default
	for part := range strings.SplitSeq(upOf(text), ";") {
		statement := withoutComments(part)
		refuse := func(what, why string) {
			if !unusedSince.MatchString(part) {
				problems = append(problems, fmt.Sprintf("%s: %s. Add now, and remove in the release after the one that stopped using it, "+
					"with the comment `-- unused since vX.Y.Z: why` before the statement", what, why))
			}
		}
		if m := createTable.FindStringSubmatch(statement); m != nil {
			made = append(made, m[1])
		} else if m := createUnique.FindStringSubmatch(statement); m != nil {
			k.unique[m[1]] = true
			fresh := slices.ContainsFunc(strings.Split(m[3], ", "), func(c string) bool { return added[m[2]+"."+strings.Trim(c, `"`)] })
			if !slices.Contains(made, m[2]) && !fresh {
				refuse(m[0], "the running version may write rows that are equal in these columns")
			}
		} else if m := dropIndex.FindStringSubmatch(statement); m != nil {
			if k.unique[m[1]] {
				refuse(m[0], "the running version upserts by it (ON CONFLICT)")
			}
		} else if m := alterTable.FindStringSubmatch(statement); m != nil {
			for _, clause := range clauses(m[2]) {
				if why := checkClause(m[1], clause, added); why != "" && !slices.Contains(made, m[1]) {
					refuse(clause+` of "`+m[1]+`"`, why)
				}
			}
		} else if m := update.FindStringSubmatch(statement); m != nil {
			_, fresh := added[m[1]+"."+m[2]]
			if f := fill.FindStringSubmatch(statement); !(f != nil && f[2] == f[3]) && !(fresh && strings.Count(statement, "=") == 1) {
				refuse(statement, "the running version reads and writes these values as they were: fill only what is NULL, or a column that this migration adds")
			}
		} else if statement != "" && !nonBlocking.MatchString(statement) {
			refuse(statement, "the running version may need what it takes away")
		}
	}
	return problems
}

// blocks returns index changes without CONCURRENTLY, except on tables that the migration itself creates.
func blocks(text string) (problems []string) {
	made := map[string]bool{} // tables, and their indexes
	for part := range strings.SplitSeq(upOf(text), ";") {
		statement := withoutComments(part)
		if m := createTable.FindStringSubmatch(statement); m != nil {
			made[m[1]] = true
		}
		if !anyIndex.MatchString(statement) || concurrently.MatchString(statement) {
			continue
		}
		if m := indexOn.FindStringSubmatch(statement); m != nil && made[m[2]] {
			made[m[1]] = true
		} else if m := dropIndex.FindStringSubmatch(statement); m == nil || !made[m[1]] {
			problems = append(problems, statement+": nodes that use the table wait for it. Write CONCURRENTLY, in a file that begins with `-- +goose NO TRANSACTION`")
		}
	}
	return problems
}

// upOf returns the up part of a migration.
func upOf(text string) string {
	_, up, _ := strings.Cut(text, "-- +goose Up\n")
	up, _, _ = strings.Cut(up, "-- +goose Down\n")
	return up
}

// checkClause returns what is wrong with a clause of ALTER TABLE.
func checkClause(table, clause string, added map[string]bool) string {
	m := addColumn.FindStringSubmatch(clause)
	switch {
	case m != nil && constraint.MatchString(clause):
		return "the running version may write rows that break it"
	case m != nil && strings.Contains(clause, " DEFAULT "):
		added[table+"."+m[1]] = false
		return ""
	case m != nil && strings.Contains(clause, " NOT NULL"):
		return "the running version inserts rows without it: give it a default, or let it be NULL"
	case m != nil:
		added[table+"."+m[1]] = true
		return ""
	case relaxing.MatchString(clause):
		return ""
	}
	return "the running version reads and writes the table as it was"
}

// clauses splits an ALTER TABLE at the commas outside parentheses.
func clauses(text string) (list []string) {
	depth, begin := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			list, begin = append(list, strings.TrimSpace(text[begin:i])), i+1
		}
	}
	return append(list, strings.TrimSpace(text[begin:]))
}

func withoutComments(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "--") })
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
