// Package osv reads advisories in the format of the Open Source Vulnerability schema
// (https://ossf.github.io/osv-schema) and says which versions of packages they are about.
package osv
