package services

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

// writesCheck is the name of the check.
const writesCheck = "database writes"

// checkWrites checks that the server may write to the database. current means that the schema needs no migration.
func checkWrites(ctx context.Context, st *store.Store, current bool) Check {
	create := ""
	if st.Postgres() {
		r, err := readRights(ctx, st)
		if err != nil {
			return failed(writesCheck, err.Error(), "check the database's log")
		}
		if problem, fix := r.problem(current); problem != "" {
			return failed(writesCheck, problem, fix)
		}
		if !r.create {
			create = "; it may not create tables: run palisade migrate up as another role"
		}
	}
	if !current { // there may be no table yet
		return passed(writesCheck, "changes are allowed"+create)
	}
	switch err := server.ProbeWrite(ctx, st); {
	case err != nil && server.Refusal(err) != "":
		return failed(writesCheck, err.Error(), writeFix(st, err))
	case err != nil:
		return passed(writesCheck, "changes are allowed, but the database is busy"+create)
	}
	return passed(writesCheck, "a change was made and rolled back"+create)
}

func writeFix(st *store.Store, err error) string {
	switch {
	case apierr.IsReadOnly(err) && !st.Postgres():
		return "let the server's user write to " + st.Location() + " and its directory"
	case apierr.Is(apierr.Map(err), apierr.ReasonOf(apierr.StorageFull(0, ""))):
		return "make room where the database lies"
	}
	return "check the database's log"
}

// rights are the permissions of the PostgreSQL role.
type rights struct {
	role, database string
	schema         string // schema of the tables; empty: the role may use none
	standby        bool
	readOnly       bool
	create         bool
	missing        []string // tables on which the role lacks permissions
	sequences      bool     // the role may not use a sequence
	// setBy is the object that sets default_transaction_read_only, in the syntax of ALTER.
	setBy string
}

func readRights(ctx context.Context, st *store.Store) (r rights, err error) {
	db, _ := st.DB()
	err = db.QueryRowContext(ctx, `SELECT current_user, current_database(), COALESCE(current_schema(), ''), pg_is_in_recovery(),
		current_setting('default_transaction_read_only')::boolean, COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false)`).
		Scan(&r.role, &r.database, &r.schema, &r.standby, &r.readOnly, &r.create)
	if err == nil && r.readOnly {
		err = r.readSetter(ctx, db)
	}
	if err == nil && r.schema != "" {
		err = r.readMissing(ctx, db)
	}
	if err != nil {
		return rights{}, fmt.Errorf("read the permissions of the role: %w", err)
	}
	return r, nil
}

// readSetter finds what sets default_transaction_read_only: the role in this database, then the role, then the
// database.
func (r *rights) readSetter(ctx context.Context, db *sql.DB) error {
	var ofRole, inDatabase bool
	err := db.QueryRowContext(ctx, `SELECT s.setrole <> 0, s.setdatabase <> 0 FROM pg_db_role_setting s
		WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
			AND s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = current_user))
			AND EXISTS (SELECT FROM unnest(s.setconfig) c WHERE starts_with(c, 'default_transaction_read_only='))
		ORDER BY s.setrole <> 0 AND s.setdatabase <> 0 DESC, s.setrole <> 0 DESC LIMIT 1`).Scan(&ofRole, &inDatabase)
	role, database := pgx.Identifier{r.role}.Sanitize(), pgx.Identifier{r.database}.Sanitize()
	switch {
	case errors.Is(err, sql.ErrNoRows):
		r.setBy = "SYSTEM"
		return nil
	case err != nil:
		return err
	case ofRole && inDatabase:
		r.setBy = "ROLE " + role + " IN DATABASE " + database
	case ofRole:
		r.setBy = "ROLE " + role
	default:
		r.setBy = "DATABASE " + database
	}
	return nil
}

// readMissing checks the tables of Palisade, including its queue, and no others in the schema.
func (r *rights) readMissing(ctx context.Context, db *sql.DB) error {
	names := []string{"goose_db_version"}
	for _, t := range migrate.Tables {
		names = append(names, t.Name)
	}
	rows, err := db.QueryContext(ctx, `SELECT c.relname, concat_ws(', ',
			CASE WHEN NOT has_table_privilege(c.oid, 'SELECT') THEN 'SELECT' END, CASE WHEN NOT has_table_privilege(c.oid, 'INSERT') THEN 'INSERT' END,
			CASE WHEN NOT has_table_privilege(c.oid, 'UPDATE') THEN 'UPDATE' END, CASE WHEN NOT has_table_privilege(c.oid, 'DELETE') THEN 'DELETE' END)
		FROM pg_class c WHERE c.relnamespace = to_regnamespace(quote_ident($1)) AND c.relkind IN ('r', 'p')
			AND (c.relname = ANY($2) OR starts_with(c.relname, 'river_')) ORDER BY c.relname`, r.schema, names)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports it
	for rows.Next() {
		var table, missing string
		if err := rows.Scan(&table, &missing); err != nil {
			return err
		}
		if missing != "" {
			r.missing = append(r.missing, table+" ("+missing+")")
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	// Sequences of identity columns need no permission of their own.
	return db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_depend d ON d.objid = c.oid AND d.deptype = 'a' AND d.classid = 'pg_class'::regclass
		JOIN pg_class t ON t.oid = d.refobjid WHERE t.relnamespace = to_regnamespace(quote_ident($1)) AND (t.relname = ANY($2) OR starts_with(t.relname, 'river_'))
			AND CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE') END)`, r.schema, names).Scan(&r.sequences)
}

// problem returns what keeps the role from writing, and the commands that fix it; empty for none.
func (r *rights) problem(current bool) (problem, fix string) {
	role, schema := pgx.Identifier{r.role}.Sanitize(), pgx.Identifier{r.schema}.Sanitize()
	switch {
	case r.standby:
		return "the server is a standby, which takes no changes",
			"name the primary with --database; with several hosts and target_session_attrs=read-write the primary is found (docs/scale.md)"
	case r.readOnly && r.setBy == "SYSTEM":
		return "all transactions are read only (default_transaction_read_only)",
			"as a superuser, run: ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf(); and take it out of the database's URL, if it is there"
	case r.readOnly:
		return "all transactions of the role " + r.role + " are read only (default_transaction_read_only)",
			"run: ALTER " + r.setBy + " RESET default_transaction_read_only"
	case r.schema == "":
		return "the role " + r.role + " may use no schema of the database " + r.database,
			"as the owner of the database, run: GRANT USAGE, CREATE ON SCHEMA public TO " + role
	case len(r.missing) > 0:
		const most = 3
		list := strings.Join(r.missing[:min(most, len(r.missing))], ", ")
		if more := len(r.missing) - most; more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
		return "the role " + r.role + " lacks rights on tables: " + list,
			"as the owner of the tables, run: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + schema + " TO " + role +
				"; GRANT USAGE ON ALL SEQUENCES IN SCHEMA " + schema + " TO " + role
	case r.sequences:
		return "the role " + r.role + " may not use the sequences that number rows",
			"as the owner of the tables, run: GRANT USAGE ON ALL SEQUENCES IN SCHEMA " + schema + " TO " + role
	case !r.create && !current:
		return "the role " + r.role + " may not create tables in the schema " + r.schema + ", which migrations need",
			"as the owner of the schema, run: GRANT CREATE ON SCHEMA " + schema + " TO " + role + ", or run palisade migrate up as another role"
	}
	return "", ""
}
