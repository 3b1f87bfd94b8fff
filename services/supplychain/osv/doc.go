// Package osv parses advisories in the Open Source Vulnerability format (https://ossf.github.io/osv-schema) and decides
// which package versions they affect.
package osv
