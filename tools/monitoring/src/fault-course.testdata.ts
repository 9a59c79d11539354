import type { Alert } from './alert.ts';
import { ALERTS } from './alerts.ts';

/** How long a network is healthy, has a fault and is healthy again: only as long as its alert needs. Samples are a minute apart. */

export interface Course {
  /** Minutes: the first of the fault, the first after it, and the last of all. */
  readonly begins: number;
  readonly ends: number;
  readonly end: number;
}
/** The samples of a series in promtool's notation. */
export type Samples = (course: Course) => string;

const HEALTHY_BEFORE = 6;
/** Rates look back five minutes: the condition of an alert may come that much later than its fault. */
const RATE = 5;

export const minutesOf = (duration: string): number =>
  Number.parseInt(duration, 10) * (duration.endsWith('h') ? 60 : 1);
/** Of all alerts but those that wait for hours. */
const longestWait = Math.max(
  ...ALERTS.filter((alert) => !alert.for.endsWith('h')).map((alert) => minutesOf(alert.for)),
);
/** What the expression looks back. */
const rangeOf = ({ expr }: Alert): number =>
  Math.max(0, ...[...expr.matchAll(/\[(\d+[mh])\]/g)].map(([, range]) => minutesOf(range!)));

/** The fault is there until every other alert, too, would fire that it gives reason for. */
export const courseOf = (alert: Alert): Course => {
  const ends = HEALTHY_BEFORE + Math.max(minutesOf(alert.for), longestWait) + RATE + 1;
  return { begins: HEALTHY_BEFORE, ends, end: ends + rangeOf(alert) + 2 };
};

/** The number of samples is one more than that behind the x. */
const joined =
  (before: string, fault: string, after: string): Samples =>
  ({ begins, ends, end }) =>
    `${before}x${begins - 1} ${fault}x${ends - begins - 1} ${after}x${end - ends}`;

export const gauge = (healthy: number, faulty: number): Samples => joined(`${healthy}`, `${faulty}`, `${healthy}`);

/** No series during the fault: `_xN` are N samples. */
export const absent: Samples = ({ begins, ends, end }) => `1x${begins - 1} _x${ends - begins} 1x${end - ends}`;

/** A counter that rises during the fault. */
export const counter =
  (perMinute: number): Samples =>
  (course) =>
    joined('0', `0+${perMinute}`, `${perMinute * (course.ends - course.begins - 1)}`)(course);

/** A time that stands still during the fault; seconds. */
export const standing: Samples = (course) =>
  joined('0+60', `${60 * (course.begins - 1)}`, `${60 * course.ends}+60`)(course);
