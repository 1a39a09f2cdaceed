import { useState } from "preact/hooks"
import { ApiError } from "../api"

/** The result of a button that was pressed. */
export function useSending<T>() {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError | null>(null)
  const [data, setData] = useState<T | null>(null)
  const forget = () => {
    setError(null)
    setData(null)
  }
  const send = (call: Promise<{ data: T }>, then: (data: T) => void) => {
    setBusy(true)
    forget()
    call
      .then(
        (answer) => {
          setData(answer.data)
          then(answer.data)
        },
        (error: unknown) => {
          if (!(error instanceof ApiError)) throw error
          setError(error)
        },
      )
      .finally(() => setBusy(false))
  }
  return { busy, error, data, send, forget }
}
