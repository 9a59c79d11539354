/**
 * The element that would stand at an index if the values were in order, without bringing all of them into order: 100 sites have 10,000
 * medians every three seconds. C. A. R. Hoare, Algorithm 65: Find (1961).
 *
 * @param values are brought into another order
 */
export const selectSmallest = (values: Float64Array, index: number): number => {
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const pivot = values[(low + high) >> 1]!;
    let [left, right] = [low, high];
    while (left <= right) {
      while (values[left]! < pivot) left++;
      while (values[right]! > pivot) right--;
      if (left > right) break;
      [values[left], values[right]] = [values[right]!, values[left]!];
      left++;
      right--;
    }
    if (index <= right) high = right;
    else if (index >= left) low = left;
    else break;
  }
  return values[index]!;
};
