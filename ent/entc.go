//go:build ignore

// Command entc generates this folder from ent/schema.
package main

import (
	"log"

	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
)

func main() {
	storage, err := gen.NewStorage("sql")
	if err != nil {
		log.Fatal(err)
	}
	// Versioned migrations change the databases, so the client needs no code for that: 3 MB of the binary. The templates
	// write what describes the tables.
	storage.SchemaMode &^= gen.Migrate
	err = entc.Generate("./schema", &gen.Config{Storage: storage},
		entc.FeatureNames("privacy", "entql", "sql/upsert", "sql/lock", "sql/modifier", "sql/execquery"), entc.TemplateDir("./template"))
	if err != nil {
		log.Fatal(err)
	}
}
