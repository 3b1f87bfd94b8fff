package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/findings/printout"
)

func newMigrate(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database schema, show its version, or copy the database to another kind",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	up := migrateCommand(std, services.Migrate, "up", "Apply the migrations that are missing",
		`Apply the migrations that this version of Palisade needs and the database does not have yet. Running it
again changes nothing. Those that were applied now are printed. Take a backup first.`,
		`  palisade migrate up
  palisade migrate up --database postgres://palisade:…@db/palisade`,
		"The schema is up to date.")
	status := migrateCommand(std, services.MigrationStatuses, "status", "List the migrations and when each was applied",
		`List the migrations that this version of Palisade knows and when each was applied to the database.
Nothing is changed.`,
		`  palisade migrate status --data /var/lib/palisade`,
		"There are no migrations.")
	cmd.AddCommand(up, status, newMigrateCopy(std))
	return cmd
}

func migrateCommand(
	std streams,
	act func(context.Context, config.Config) ([]services.MigrationStatus, error),
	use, short, long, example, none string,
) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			migrations, err := act(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if len(migrations) == 0 {
				_, err := fmt.Fprintln(std.out, none)
				return err
			}
			return printMigrations(std.out, migrations)
		},
	}
	config.AddFlags(cmd.Flags(), storeKeys...)
	return cmd
}

func printMigrations(w io.Writer, migrations []services.MigrationStatus) error {
	table := printout.NewTable(w)
	_, _ = fmt.Fprintln(table, "VERSION\tNAME\tAPPLIED")
	for _, m := range migrations {
		applied := "pending"
		if !m.AppliedAt.IsZero() {
			applied = m.AppliedAt.UTC().Format(time.DateTime)
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\n", m.Version, m.Name, applied)
	}
	return table.Flush()
}
