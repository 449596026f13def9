// A run that ends with a question goes on when somebody has answered it, here or after a reload.

import { useInterrupt } from "@copilotkit/react-core/v2";

export function useApproval() {
  useInterrupt({
    render: ({ interrupt, resolve, cancel }) => (
      <div className="card question" data-testid="question">
        <span>{interrupt?.message ?? "May I go on?"}</span>
        <button onClick={() => resolve({ approved: true })}>Approve</button>
        <button onClick={() => resolve({ approved: false })}>Reject</button>
        <button className="quiet" onClick={() => cancel()}>
          Cancel
        </button>
      </div>
    ),
  });
}
