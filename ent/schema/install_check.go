package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// InstallScan is one request to the malware firewall: may these packages be installed?
type InstallScan struct{ ent.Schema }

// Mixin of an install scan.
func (InstallScan) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an install scan.
func (InstallScan) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("user").Immutable().Comment("name from the scanner"),
		field.String("scanner").Immutable(),
		field.Int32("packages").Immutable(),
		field.Int32("blocked").Immutable(),
		timestamp("at").Immutable(),
	}
}

// Indexes of an install scan.
func (InstallScan) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "at", "user", "blocked").StorageKey("install_scans_by_time"),
	}
}

// InstallCheck is the result for one package of an install scan.
type InstallCheck struct{ ent.Schema }

// Mixin of an install check.
func (InstallCheck) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an install check.
func (InstallCheck) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("scan_id").Immutable(),
		field.String("ecosystem").Immutable().Comment("contract's word: npm, pypi, gomod, …"),
		field.String("package").Immutable(),
		field.String("version").Immutable(),
		field.String("advisory").Immutable().Optional().Nillable().Comment("id of the advisory that blocks it; null: allowed"),
		field.String("title").Immutable().Default("").Comment("summary of that advisory at the time"),
		timestamp("at").Immutable(),
	}
}

// Indexes of an install check.
func (InstallCheck) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "scan_id", "id").StorageKey("install_checks_of_scan"),
		index.Fields("deployment_id", "at", "advisory", "ecosystem", "package", "version").StorageKey("install_checks_blocked").
			Annotations(entsql.IndexWhere("advisory IS NOT NULL")),
	}
}

// Advisory lists vulnerable or malicious versions of packages, imported from files in the OSV format.
type Advisory struct{ ent.Schema }

// Mixin of an advisory.
func (Advisory) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an advisory.
func (Advisory) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("osv_id").Immutable().Comment("MAL-2026-1234"),
		field.String("title"),
		field.Bool("malicious").Comment("only malicious advisories block"),
		timestamp("modified_at"),
		timestamp("withdrawn_at").Optional().Nillable(),
		field.Bytes("details").Optional().Comment("palisade.store.v1.AdvisoryDetails; null until it is imported again after an upgrade"),
	}
}

// Indexes of an advisory.
func (Advisory) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "osv_id").Unique().StorageKey("advisories_by_osv_id"),
		index.Fields("deployment_id", "id").StorageKey("advisories_list"),
	}
}

// AdvisoryPackage is one package that an advisory affects.
type AdvisoryPackage struct{ ent.Schema }

// Mixin of an advisory's package.
func (AdvisoryPackage) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an advisory's package.
func (AdvisoryPackage) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("advisory_id").Immutable(),
		field.String("ecosystem").Immutable().Comment("contract's word: npm, pypi, gomod, …"),
		field.String("package").Immutable().Comment("normalized by the rules of the ecosystem"),
		field.Bytes("affected").Immutable().Comment("palisade.store.v1.AffectedVersions"),
	}
}

// Indexes of an advisory's package.
func (AdvisoryPackage) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "ecosystem", "package", "advisory_id").Unique().StorageKey("advisory_packages_by_name"),
		index.Fields("deployment_id", "advisory_id").StorageKey("advisory_packages_of_advisory"),
	}
}

// AdvisoryChange is an advisory that was imported and not yet compared with the stored dependencies.
type AdvisoryChange struct{ ent.Schema }

// Mixin of a change.
func (AdvisoryChange) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a change.
func (AdvisoryChange) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("advisory_id").Immutable(),
	}
}

// Indexes of a change.
func (AdvisoryChange) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "id").StorageKey("advisory_changes_list"),
	}
}
