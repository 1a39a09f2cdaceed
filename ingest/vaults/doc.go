// Package vaults decides which vaults are indexed, and keeps their records in the log: their configuration (Config),
// what they return about themselves, and the operators' commands about them (Registrar).
//
// The vaults are those of the log that were not removed, and those that chain.vaults adds. A vault that is missing from
// chain.vaults stays, with a warning. Only a command removes one (`navlog vault remove`): the command is queued in
// PostgreSQL, which is read once a second, and is done when the log has its record. A command that runs twice changes
// nothing more, so a crash between the log and the registry needs no repair. Without PostgreSQL the log's vaults stay.
// Commands are executed in order; one whose calls of the vault fail for about a minute is refused.
package vaults
