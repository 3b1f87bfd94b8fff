// Package sbom writes software bills of materials (SBOMs) in CycloneDX: a job reads the packages of a project, what
// they require, and the vulnerabilities that findings report, and stores the document as a file of an export.
package sbom

const (
	// maxPlaces is the maximum number of packages of an SBOM. A package counts for each lockfile that has it.
	maxPlaces = 50_000
	// maxVulnerable is the maximum number of findings of an SBOM.
	maxVulnerable = 50_000
	// maxBytes is the maximum size of a document: a task's result is one text.
	maxBytes = 32 << 20
	// rowsAtOnce is how many rows are read together.
	rowsAtOnce = 1000
)
