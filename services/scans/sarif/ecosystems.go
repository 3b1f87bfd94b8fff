package sarif

import "strings"

// ecosystems maps the ecosystems of package URLs and tools to the API's.
var ecosystems = map[string]string{
	"npm": "npm", "npmjs": "npm", "js": "npm", "javascript": "npm", "node": "npm", "node-pkg": "npm", "yarn": "npm", "pnpm": "npm",
	"pypi": "pypi", "whl": "pypi", "python": "pypi", "pip": "pypi", "python-pkg": "pypi", "poetry": "pypi", "pipenv": "pypi",
	"golang": "gomod", "go": "gomod", "gomod": "gomod", "go-module": "gomod", "gobinary": "gomod",
	"cargo": "cargo", "crates": "cargo", "crate": "cargo", "rust": "cargo", "crates.io": "cargo", "rust-crate": "cargo",
	"maven": "maven", "java": "maven", "java-archive": "maven", "gradle": "maven", "pom": "maven", "jar": "maven", "war": "maven",
	"gem": "gem", "rubygems": "gem", "ruby": "gem", "bundler": "gem",
	"composer": "composer", "packagist": "composer", "php": "composer", "php-composer": "composer",
	"nuget": "nuget", "nupkg": "nuget", "dotnet": "nuget", "pub": "pub", "dart": "pub", "dart-pub": "pub",
	"swift": "swiftpm", "swiftpm": "swiftpm", "hex": "hex", "mix": "hex", "erlang": "hex",
}

func ecosystem(word string) string { return ecosystems[strings.ToLower(strings.TrimSpace(word))] }

// lockfiles maps file names to ecosystems.
var lockfiles = map[string]string{
	"package-lock.json": "npm", "npm-shrinkwrap.json": "npm", "yarn.lock": "npm", "pnpm-lock.yaml": "npm", "package.json": "npm",
	"requirements.txt": "pypi", "poetry.lock": "pypi", "pipfile.lock": "pypi", "uv.lock": "pypi", "pyproject.toml": "pypi",
	"go.mod": "gomod", "go.sum": "gomod", "cargo.lock": "cargo", "cargo.toml": "cargo",
	"pom.xml": "maven", "gradle.lockfile": "maven", "build.gradle": "maven", "build.gradle.kts": "maven",
	"gemfile.lock": "gem", "composer.lock": "composer", "packages.lock.json": "nuget", "pubspec.lock": "pub",
	"package.resolved": "swiftpm", "mix.lock": "hex",
}
