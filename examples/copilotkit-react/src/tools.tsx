// Tools: one that this page carries out, and two that are the agent's own. Each has a look.

import { useFrontendTool, useRenderTool } from "@copilotkit/react-core/v2";
import { z } from "zod";

const COLOURS = ["teal", "rose", "indigo"] as const;
export type Colour = (typeof COLOURS)[number];

export function useTools(paint: (colour: Colour) => void) {
  // Carried out here, when the run that called it has ended; the answer starts the next run.
  useFrontendTool({
    name: "paint_page",
    description: "Paints the page in another colour",
    parameters: z.object({ colour: z.enum(COLOURS).describe("the new colour of the page") }),
    handler: async ({ colour }) => {
      paint(colour);
      return `The page is ${colour} now`;
    },
    render: ({ args, status }) => (
      <div className="card" data-testid="paint">
        <span className="swatch" data-colour={args.colour} />
        {status === "complete" ? "Painted the page" : "Painting the page"} {args.colour}
      </div>
    ),
  });

  // Carried out by the agent; only drawn here.
  useRenderTool({
    name: "get_weather",
    parameters: z.object({ city: z.string() }),
    render: ({ parameters, status, result }) => {
      const weather = status === "complete" ? read(result) : undefined;
      return (
        <div className="card" data-testid="weather">
          <strong>{parameters.city ?? "…"}</strong>
          {weather ? (
            <span>
              {weather.celsius} °C, {weather.sky}
            </span>
          ) : (
            <span className="quiet">{status === "complete" ? "no weather" : "looking …"}</span>
          )}
        </div>
      );
    },
  });

  useRenderTool({
    name: "delete_file",
    parameters: z.object({ path: z.string() }),
    render: ({ parameters, status }) => (
      <div className="card" data-testid="delete">
        <span>
          Delete <code>{parameters.path ?? "…"}</code>
        </span>
        <span className="quiet">{status === "complete" ? "decided" : "waits for consent"}</span>
      </div>
    ),
  });
}

/** What the tool answered; `undefined` where that is no weather, as after a stop. */
function read(result: string) {
  const weather = z.object({ celsius: z.number(), sky: z.string() });
  try {
    return weather.safeParse(JSON.parse(result)).data;
  } catch {
    return undefined;
  }
}
