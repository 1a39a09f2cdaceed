// Package httpapi is what all endpoints have in common.
package httpapi
