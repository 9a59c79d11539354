import { expect, test } from 'vitest';
import { checkInstances, instancesFree } from './inotify.ts';

test('as many instances are free as are asked for, if the kernel gives them', () => {
  expect(instancesFree(0)).toBe(0);
  expect(instancesFree(2)).toBe(2);
});

test('a lab fits into what is free, to the last instance', () => {
  expect(() => checkInstances(7, 128, 74)).not.toThrow();
  expect(() => checkInstances(7, 128, 73)).toThrow(
    /^7 Kubernetes nodes need 74 inotify instances, and 73 of this user's 128 are free\..*tools\/lab down.*max_user_instances=512 /,
  );
  expect(() => checkInstances(97, 128, 120)).toThrow('max_user_instances=892 ');
});
