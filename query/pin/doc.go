// Package pin decides which state an answer is about.
package pin
