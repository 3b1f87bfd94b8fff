// Package supplychain serves what scans need to know of dependencies and of the registries they come from: the service
// group package manager configurations.
package supplychain
